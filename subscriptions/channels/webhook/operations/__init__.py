"""Operations on endpoints: create, change, confirm, test and disable them."""
