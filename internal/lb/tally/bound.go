package tally

import "sync"

const (
	// MaxCombinations is the maximum number of label combinations that a metric counts separately for
	// each target. By default, the OpenTelemetry SDK keeps 2000 series of a metric, enough for several
	// targets. A configuration of 16 clusters in 8 zones needs 128.
	MaxCombinations = 200
	// A label with more bytes becomes Other.
	maxLength = 500
)

// Other replaces labels that are not counted separately.
const Other = "other"

// Labels are the labels of a series, without the target. "" means that a label is not set.
type Labels [3]string

// Bound limits the number of series of a counter. We need this limit: a series stays in memory
// until the process ends, and a control plane may choose its labels. The zero value is ready to
// use. A Bound is safe for concurrent use.
type Bound struct {
	mu      sync.Mutex
	counted map[string]map[Labels]bool // by target
}

// Limit returns the labels under which to count. The first MaxCombinations combinations of labels
// of a target stay as they are. In later ones, Other replaces each label that is set. The result
// for the same labels never changes. Limit takes a lock, so do not call it for every RPC.
func (b *Bound) Limit(target string, given Labels) Labels {
	b.mu.Lock()
	defer b.mu.Unlock()
	counted := b.counted[target]
	if counted[given] {
		return given
	}
	if len(counted) < MaxCombinations && !given.isTooLong() {
		if b.counted == nil {
			b.counted = make(map[string]map[Labels]bool)
		}
		if counted == nil {
			counted = make(map[Labels]bool)
			b.counted[target] = counted
		}
		counted[given] = true
		return given
	}
	for i, text := range given {
		if text != "" {
			given[i] = Other
		}
	}
	return given
}

func (l Labels) isTooLong() bool {
	for _, text := range l {
		if len(text) > maxLength {
			return true
		}
	}
	return false
}
