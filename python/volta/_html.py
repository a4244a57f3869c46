"""Tables and texts for notebooks; everything is escaped."""

from html import escape


def table(header, rows):
    """Rows of texts as a table."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bar(done, text):
    """A bar that is filled to a fraction, and what stands beside it."""
    filled = "" if done is None else f' value="{done:.4f}"'
    return f'<progress max="1"{filled}></progress> <code>{escape(text)}</code>'


def tensor(x):
    """Shape, dtype and device of a tensor, and its values, shortened as its text is."""
    caption = f"{type(x).__name__} {tuple(x.shape)} {x.dtype.name} {x.device}" + (
        " requires_grad" if x.requires_grad else ""
    )
    return f"<div><small>{escape(caption)}</small><pre>{escape(repr(x.detach()))}</pre></div>"
