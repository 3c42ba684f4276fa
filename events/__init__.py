if __name__ != "tailrace.events":
    raise ImportError("this package is `tailrace.events`: import it by that name")
