from tailrace.web.accounts.personal_data import PersonalData


class Umbrella(PersonalData):
    """The colour of your umbrella."""
