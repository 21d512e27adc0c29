"""What a release has: the site in one file, the chapter on paper, and the library."""
