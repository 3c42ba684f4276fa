if __name__ != "tailrace.environment":
    raise ImportError("this package is `tailrace.environment`: import it by that name")
