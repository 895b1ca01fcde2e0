package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Tier is what a policy says of all the endpoints below it, beside its connectivity
// state. It travels with the policy's picker, so a parent that does not know it loses
// nothing. The zero value says nothing.
type Tier struct {
	// Condition says whether the calls should go elsewhere, if they can.
	Condition Condition
	// Interval is how often a tier that is HalfOpen wants a call, at least.
	Interval time.Duration
}

// Condition says whether calls should go to a tier.
type Condition uint8

// The conditions.
const (
	// Usable is a tier like any other.
	Usable Condition = iota
	// Emptied is a tier none of whose endpoints answers well. It takes the calls if
	// nothing else does.
	Emptied
	// HalfOpen is a tier that was Emptied, and gets a few calls to show whether it
	// answers well again.
	HalfOpen
)

// String returns the condition in lower case.
func (c Condition) String() string { return [...]string{"usable", "emptied", "half-open"}[c] }

// TierOf returns what a policy says with its picker.
func TierOf(picker balancer.Picker) Tier {
	if p, ok := picker.(interface{ Tier() Tier }); ok {
		return p.Tier()
	}
	return Tier{}
}
