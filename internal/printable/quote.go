package printable

import "fmt"

// Quote returns the text in quotes. It truncates long text.
func Quote(text string) string {
	const most = 100
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
}
