package page

import (
	"fmt"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxStale = 4

// Stale returns a sentence for each source that's failing while we still use its last answer.
func (c *Channel) Stale(now time.Time) (sentences []string) {
	n := 0
	for _, s := range c.Sources {
		if !s.Stale() {
			continue
		}
		if n++; n <= maxStale {
			sentences = append(sentences, s.stale(now))
		}
	}
	if n > maxStale {
		sentences = append(sentences, fmt.Sprintf("And %d more sources fail.", n-maxStale))
	}
	return sentences
}

func (s Source) Stale() bool { return s.Error != "" && s.Confirmed != nil }

func (s Source) stale(now time.Time) string {
	ago := func(t *time.Time) string { return printable.Duration(max(0, now.Sub(*t))) }
	text := "The source has been failing"
	if s.Name != "" { // older pages don't name the only source
		text = "Source " + s.Name + " has been failing"
	}
	if s.ErrorSince != nil {
		text += " for " + ago(s.ErrorSince)
	}
	text += "; the endpoints"
	if s.Version != "" {
		text += " of version " + s.Version
	}
	return text + ", confirmed " + ago(s.Confirmed) + " ago, stay in use: " + s.Error
}
