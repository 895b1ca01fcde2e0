package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Tier describes the endpoints below a policy in more detail than a connectivity state. The parent
// gets it from the policy's picker (see TierOf).
type Tier struct {
	// Condition is Usable, unless calls should go to another priority.
	Condition Condition
	// Interval is the maximum time between two trial calls while the policy is HalfOpen.
	Interval time.Duration
	// Failures contains the status codes with which calls fail, such as "INTERNAL". It is "" if the
	// policy is Usable, or if the status codes are unknown.
	Failures string
	// ReadyShare is the share of the endpoints' weight that is READY. The weight of endpoints that are
	// CONNECTING is not part of the total.
	ReadyShare float64
	// UnprovenShare is the share of the weight whose endpoints are READY, but were ejected and have
	// not answered a call since. ReadyShare does not include it. The total is the same as for
	// ReadyShare.
	UnprovenShare float64
	// FailedShare is the share of the weight that has failed. The total includes endpoints that are
	// CONNECTING. Only package weightedroundrobin sets FailedShare.
	FailedShare float64
}

// Condition describes whether calls to the endpoints below a policy succeed.
type Condition uint8

const (
	// Usable means that calls are not known to fail.
	Usable Condition = iota
	// Emptied means that calls to all endpoints fail. The policy should get calls only if no other
	// policy can answer them.
	Emptied
	// HalfOpen means that the policy was Emptied, and that a few calls must show whether it has
	// recovered.
	HalfOpen
)

func (c Condition) String() string { return [...]string{"usable", "emptied", "half-open"}[c] }

// TierOf returns the Tier of a picker. If the picker has no Tier, it counts as Usable, and all its
// weight as READY.
func TierOf(picker balancer.Picker) Tier {
	switch p := picker.(type) {
	case interface{ Tier() Tier }:
		return p.Tier()
	case interface{ ReadyShare() float64 }:
		tier := Tier{ReadyShare: p.ReadyShare()}
		if p, ok := picker.(interface{ UnprovenShare() float64 }); ok {
			tier.UnprovenShare = p.UnprovenShare()
		}
		if p, ok := picker.(interface{ FailedShare() float64 }); ok {
			tier.FailedShare = p.FailedShare()
		}
		return tier
	}
	return Tier{ReadyShare: 1}
}
