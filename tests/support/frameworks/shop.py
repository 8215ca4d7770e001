"""What the agents of all frameworks are for: one question, and the tool that knows the answer."""

QUESTION = "Where is order A-1001?"
FUNCTION = {
    "name": "find_order",
    "description": "Find an order.",
    "parameters": {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
    },
}


def find_order(order: str) -> str:
    """Find an order.

    Args:
        order: Its id.
    """
    return f"order {order}: shipped"
