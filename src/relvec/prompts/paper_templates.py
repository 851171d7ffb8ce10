"""The five manual templates of the paper (section 3.1), by number, and the project's default."""

MANUAL_TEMPLATES: dict[int, str] = {
    1: "Today, I finally discovered the relation between [h] and [t] : [h] is the <mask> of [t]",
    2: "Today, I finally discovered the relation between [h] and [t] : [t] is [h]'s <mask>",
    3: "Today, I finally discovered the relation between [h] and [t] : <mask>",
    4: "I wasn’t aware of this relationship, but I just read in the encyclopedia that [h] is the <mask> of [t]",
    5: "I wasn’t aware of this relationship, but I just read in the encyclopedia that [t] is [h]’s <mask>",
}

# The template that the paper found best for RoBERTa.
DEFAULT_TEMPLATE = 4
