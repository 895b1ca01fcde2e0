package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Tier describes the endpoints below a policy beyond its connectivity state. The policy's picker
// carries it to the parent.
type Tier struct {
	// Condition is not Usable if calls should go to another priority.
	Condition Condition
	// Interval is the maximum time between two trial calls while the policy is HalfOpen.
	Interval time.Duration
	// Failures names the status codes that calls fail with, such as "INTERNAL". It is "" if the
	// policy is Usable, or if they are unknown.
	Failures string
	// ReadyPart is the READY share of all weight that is not CONNECTING.
	ReadyPart float64
	// UnprovenPart is a further share of that weight: it is READY, but its endpoints have not
	// answered a call since their ejection.
	UnprovenPart float64
	// FailedPart is the failed share of all weight, even if it is CONNECTING. Only package
	// weightedroundrobin sets it.
	FailedPart float64
}

// Condition describes how calls to the endpoints below a policy end.
type Condition uint8

const (
	// Usable means that calls succeed, as far as is known.
	Usable Condition = iota
	// Emptied means that calls to all endpoints fail. The policy should get calls only if no other
	// is better.
	Emptied
	// HalfOpen means that the policy was Emptied, and that a few calls must show whether it has
	// recovered.
	HalfOpen
)

func (c Condition) String() string { return [...]string{"usable", "emptied", "half-open"}[c] }

// TierOf returns the Tier of a picker. A picker without one is Usable, and all its weight is READY.
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
