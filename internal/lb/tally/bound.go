package tally

import "sync"

const (
	// MaxCombinations is how many combinations of labels a metric counts separately per target. The
	// OpenTelemetry SDK keeps 2000 series of a metric by default, so that's enough for several
	// targets. A configuration with 16 clusters in 8 zones needs 128.
	MaxCombinations = 200
	// Labels with more bytes than this become Other.
	maxLength = 500
)

const Other = "other"

// Labels are the labels of a series apart from the target. "" means that a label isn't set.
type Labels [3]string

// Bound limits the number of series of a counter. Series stay in memory until the process ends, and
// a control plane can make up labels as it likes, so we need a limit. The zero value is ready to
// use. A Bound is safe for concurrent use.
type Bound struct {
	mu      sync.Mutex
	counted map[string]map[Labels]bool
}

// Limit returns which labels to use when counting. Up to MaxCombinations combinations per target
// stay as they are. After that, each label that's set is replaced by Other. The same labels always
// give the same result. It takes a lock, so don't call it for every RPC.
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
