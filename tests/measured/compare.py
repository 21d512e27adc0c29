"""Where what was measured again differs from what the book shows."""

import copy


def differences(stored, found, path=()):
    """Return places, old and new values; a dict has only what was computed again of a list."""
    if isinstance(found, dict):
        places = found
    elif isinstance(found, list) and (first_seeds(path) or len(found) == len(stored)):
        places = range(len(found))
    else:
        return [] if stored == found else [(path, stored, found)]
    return [
        one
        for place in places
        for one in differences(stored[place], found[place], (*path, str(place)))
    ]


def first_seeds(path):
    """Return whether this is a list by seed, of which the first may be enough."""
    return bool(path) and path[-1].startswith("untrained")


def changed(content, path, by=0.001):
    """Return a copy in which one number is another."""
    content = copy.deepcopy(content)
    *way, last = path
    part = content
    for place in way:
        part = part[place]
    part[last] += by
    return content
