package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Tier is what a policy says of all the endpoints below it, beside its connectivity
// state. It travels with the policy's picker, so a parent that does not know it loses
// nothing.
type Tier struct {
	// Condition says whether the calls should go elsewhere, if they can.
	Condition Condition
	// Interval is how often a tier that is HalfOpen wants a call, at least.
	Interval time.Duration
	// Failures names the status codes that the calls of a tier which is not Usable ended
	// with, such as "INTERNAL", "" where that is not known.
	Failures string
	// ReadyPart is the part of the weight that is READY, of that which is READY or has
	// failed. What is connecting, for the first time or again, counts neither way.
	ReadyPart float64
	// UnprovenPart is the part that is READY, too, but has not answered since it was ejected.
	// ReadyPart does not hold it.
	UnprovenPart float64
	// FailedPart is the part of all weight that has failed: unlike ReadyPart it knows how much is
	// still connecting. Only package weightedroundrobin's policy says it.
	FailedPart float64
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

// TierOf returns what a policy says with its picker. One that says nothing is Usable, and
// all of it is READY.
func TierOf(picker balancer.Picker) Tier {
	switch p := picker.(type) {
	case interface{ Tier() Tier }:
		return p.Tier()
	case interface{ ReadyPart() float64 }:
		tier := Tier{ReadyPart: p.ReadyPart()}
		if p, ok := picker.(interface{ UnprovenPart() float64 }); ok {
			tier.UnprovenPart = p.UnprovenPart()
		}
		if p, ok := picker.(interface{ FailedPart() float64 }); ok {
			tier.FailedPart = p.FailedPart()
		}
		return tier
	}
	return Tier{ReadyPart: 1}
}
