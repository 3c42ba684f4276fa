if __name__ != "tailrace.subscriptions":
    raise ImportError("this package is `tailrace.subscriptions`: import it by that name")
