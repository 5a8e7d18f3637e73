"""The verbs of the model of root causes."""

from teller_core.calls.arguments import Parser, actions_of, count, number, path

READ = ("tokens", "parent", "depth", "durations", "logs", "numbers", "rules", "horizontal")
"""As teller_core.model.options has them, which is not loaded for a look at the help."""


def of_the_model(verb: Parser, common: Parser) -> None:
    """The actions of model."""
    add = actions_of(verb, common)
    train = add("train", "train a model on the sheets of lives; what was ended goes on where it stood")
    train.add_argument("--updates", type=count, metavar="N", help="of the optimizer at most (default: 1800)")
    ablate = add("ablate", "say what each part of the input is worth, each left out once, on a reduced budget")
    ablate.add_argument(
        "--without",
        action="append",
        choices=READ,
        metavar="PART",
        help=f"one or more of {', '.join(READ)} (default: all)",
    )
    ablate.add_argument("--paper", action="store_true", help="also the paper's two networks, rebuilt at this size")
    ablate.add_argument(
        "--vocabularies",
        type=path,
        metavar="PACKED",
        help="instead: what the size of the vocabulary, its guard and its rule are worth, on sheets of the lives packed there",
    )
    ablate.add_argument("--seeds", type=count, default=1, metavar="N", help="trainings of each (default: 1)")
    for each, minutes in ((train, 36), (ablate, 9)):
        each.add_argument(
            "--sheets",
            type=path,
            required=each is train,
            metavar="FOLDER",
            help="those of the training side, one file a life",
        )
        each.add_argument("--to", type=path, required=True, metavar="FOLDER", help="where what is trained goes")
        each.add_argument("--minutes", type=number, metavar="M", help=f"of each training at most (default: {minutes})")
        each.add_argument("--backbone", type=path, metavar="FOLDER", help="a causal language model to train around")
        each.add_argument("--threads", type=count, default=2, metavar="N", help="of processors (default: 2)")
    train.add_argument("--seed", type=int, default=0, help="of all that chance decides (default: 0)")
    train.add_argument(
        "--unseen", default="", metavar="CAUSE", help="learn nothing of it, to see what is said of it then"
    )
    card = add("card", "say what a model was made of, and how good it is where that could be checked")
    card.add_argument("file", nargs="?", type=path, metavar="FILE", help="its weights (default: the shipped ones)")
