package printable

import "fmt"

// Quote quotes text for an error of one line, and shortens it where it is long.
func Quote(text string) string {
	const most = 100
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
}
