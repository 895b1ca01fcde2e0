package shell

import (
	"time"

	"google.golang.org/grpc/balancer"
)

// Tier describes the endpoints below a policy beyond their connectivity state. The policy's picker
// carries it.
type Tier struct {
	// Condition is not Usable if calls should go to another priority.
	Condition Condition
	// Interval is the maximum time between two trial calls to a HalfOpen tier.
	Interval time.Duration
	// Failures lists the status codes of failed calls, such as "INTERNAL", if the tier is not
	// Usable and they are known.
	Failures string
	// ReadyPart is the READY share of the weight that is READY or has failed. It ignores weight
	// that is CONNECTING.
	ReadyPart float64
	// UnprovenPart is the share of the same weight that is READY but has answered no call since its
	// ejection. ReadyPart does not include it.
	UnprovenPart float64
	// FailedPart is the failed share of all weight, including the weight that is still CONNECTING.
	// Only package weightedroundrobin's policy sets it.
	FailedPart float64
}

// Condition is the condition of a tier, judged by the results of its calls.
type Condition uint8

const (
	// Usable means that the tier takes calls normally.
	Usable Condition = iota
	// Emptied means that no endpoint of the tier responds well. The tier takes calls only if there
	// is no better one.
	Emptied
	// HalfOpen means that a tier that was Emptied receives a few calls to test whether it responds
	// well again.
	HalfOpen
)

func (c Condition) String() string { return [...]string{"usable", "emptied", "half-open"}[c] }

// TierOf returns the Tier that a picker carries, by default a Usable one with all of its weight
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
