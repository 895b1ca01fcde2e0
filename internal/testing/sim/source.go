package sim

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

type Source interface {
	Target() string
	Options() []given.Option
	// Visible returns which endpoints a channel gets if the source publishes truth. Not every
	// source can express every property.
	Visible(truth EndpointSet) EndpointSet
	// Publish publishes truth immediately, or on Restore if the source is failing. It doesn't
	// block.
	Publish(truth EndpointSet)
	// Fail makes the source fail in a random way until Restore, and describes how.
	Fail(r *rand.Rand) string
	Restore()
	// Lag is the longest time from Publish to the channel's update, provided that the source works.
	Lag() time.Duration
	// Recovery is the longest time from Restore to the channel's update.
	Recovery() time.Duration
	// KeepsEmptyPriorities reports whether a priority keeps its number even if it has no endpoints.
	KeepsEmptyPriorities() bool
	Close()
}

func (w *World) newSource(kind string, config Config) Source {
	if kind == "mixed" {
		return newMixed(w, config)
	}
	return w.newLeaf(kind, w.truth, 0, config)
}

func (w *World) newLeaf(kind string, truth EndpointSet, first int, config Config) Source {
	switch kind {
	case "eds":
		return newEDS(w, truth)
	case "file":
		return newFile(w, truth, config.Dir)
	}
	return newNames(truth, first)
}

// kinds has an order in which the first five seeds cover every kind.
var kinds = []string{"eds", "eds", "failover", "eds", "file", "file", "eds", "mixed", "mixed", "file"}

func splitAddress(address string) (string, uint32) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return host, uint32(port)
}
