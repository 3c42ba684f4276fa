"""The web pages of builds: feeds of commits, and the templates of texts and panels."""
