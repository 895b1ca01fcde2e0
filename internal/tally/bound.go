package tally

import "sync"

const (
	// Most is the number of label combinations of a metric that are counted separately for each
	// target. By default, the OpenTelemetry SDK keeps 2000 series of a metric, enough for several
	// targets. A configuration of 16 clusters in 8 zones needs 128.
	Most = 200
	// longest is the maximum length of a label in bytes. Other replaces longer labels.
	longest = 500
)

// Other replaces the labels of combinations beyond the first Most.
const Other = "other"

// Labels are the labels of a series without the target. "" means that a label is unset.
type Labels [3]string

// Bound limits the number of series of a counter. A series stays in memory until the process ends,
// and a control plane may choose its labels. The zero value is ready to use. A Bound is safe for
// concurrent use.
type Bound struct {
	mu   sync.Mutex
	seen map[string]map[Labels]bool // by target
}

// Of returns the labels to use for the given ones. They are the given ones for the first Most
// combinations of the target. For later combinations, Other replaces each label that is set. The
// result for the same labels never changes. Of takes a lock, so it must not be called for every
// RPC.
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
