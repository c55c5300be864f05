//! Escapes text for HTML and fills page templates.

/// Escapes text for HTML elements and quoted attributes.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Escapes JSON so that it can be the content of a `<script>` element.
pub fn escape_script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Replaces every `{{name}}` in a template by the text that `fill` returns for the name. Placeholders in inserted text
/// are not replaced.
pub fn fill_template(template: &str, fill: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(template.len());
    let mut parts = template.split("{{");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match part.split_once("}}") {
            Some((name, rest)) => {
                out.push_str(&fill(name));
                out.push_str(rest);
            }
            None => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_once() {
        assert_eq!(fill_template("a {{x}} b {{y}}", |name| format!("<{name} {{{{x}}}}>")), "a <x {{x}}> b <y {{x}}>");
        assert_eq!(escape_script_json("\"</script>\""), "\"\\u003c/script>\"");
    }
}
