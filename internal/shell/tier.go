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
	// Failures names the status codes with which calls fail, such as "INTERNAL". It is empty if the
	// policy is Usable, or if they are unknown.
	Failures string
	// ReadyPart is the share of the weight that is READY. Weight that is CONNECTING is left out.
	ReadyPart float64
	// UnprovenPart is a further share of the same weight: it is READY, but has not answered a call
	// since its ejection.
	UnprovenPart float64
	// FailedPart is the failed share of all weight, including weight that is CONNECTING. Only
	// package weightedroundrobin sets it.
	FailedPart float64
}

// Condition is the condition of the endpoints below a policy, judged by their calls.
type Condition uint8

const (
	// Usable means that calls succeed as far as is known.
	Usable Condition = iota
	// Emptied means that calls to all endpoints fail. The policy should get calls only if there is
	// no better one.
	Emptied
	// HalfOpen means that the policy was Emptied. A few calls must show whether it has recovered.
	HalfOpen
)

func (c Condition) String() string { return [...]string{"usable", "emptied", "half-open"}[c] }

// TierOf returns the Tier of a picker. For a picker that has none, it is Usable, and all weight is
// READY.
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
