package printable

import "fmt"

// Quote returns the text in quotes, truncated to 100 bytes.
func Quote(text string) string {
	const limit = 100
	if len(text) <= limit {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:limit], len(text))
}
