if __name__ != "tailrace.web":
    raise ImportError("this package is `tailrace.web`: import it by that name")
