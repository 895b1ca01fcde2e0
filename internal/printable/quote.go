package printable

import "fmt"

// Quote quotes text for use in an error, and truncates it.
func Quote(text string) string {
	const most = 100
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
}
