package tally

import "sync"

const (
	// Most is how many different labels of a metric are counted for each target. The SDK of
	// OpenTelemetry keeps 2000 series of a metric by default, so that some targets fit. A
	// configuration of 16 clusters in 8 zones needs 128.
	Most = 200
	// longest is the size in bytes of the longest label that is counted.
	longest = 500
)

// Other stands for the labels that came after Most others.
const Other = "other"

// Labels are those of a series, beside the target. "" is none.
type Labels [3]string

// Bound bounds the series of a counter, which are in memory until the process ends, where the
// labels are names from outside. The zero value is ready to use. It is safe for concurrent use.
type Bound struct {
	mu   sync.Mutex
	seen map[string]map[Labels]bool // by target
}

// Of returns the labels to count under: those given, where they are among the first Most
// of the target, else Other in place of each that there is. What was returned once
// for some labels is returned always. It takes a lock, so it is not for each call.
func (b *Bound) Of(target string, given Labels) Labels {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen[target]
	if seen[given] {
		return given
	}
	if len(seen) < Most && !given.tooLong() {
		if b.seen == nil {
			b.seen = make(map[string]map[Labels]bool)
		}
		if seen == nil {
			seen = make(map[Labels]bool)
			b.seen[target] = seen
		}
		seen[given] = true
		return given
	}
	for i, text := range given {
		if text != "" {
			given[i] = Other
		}
	}
	return given
}

func (l Labels) tooLong() bool {
	for _, text := range l {
		if len(text) > longest {
			return true
		}
	}
	return false
}
