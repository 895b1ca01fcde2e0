package sim

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// Source is the source of a channel's endpoints.
type Source interface {
	// Target returns the channel's target.
	Target() string
	// Options returns the options that the source needs. It is called once.
	Options() []given.Option
	// Sees returns the part of truth that the source can express.
	Sees(truth Truth) Truth
	// Publish publishes truth, immediately or when the source works again. It does not block.
	Publish(truth Truth)
	// Fail makes the source fail in a random way until Restore is called, and returns a description
	// of the fault.
	Fail(r *rand.Rand) string
	// Restore ends the fault and publishes the last truth again.
	Restore()
	// Lag limits the time from Publish to the channel's update while the source works.
	Lag() time.Duration
	// Recovery limits the time from Restore to the channel's update.
	Recovery() time.Duration
	// Fixed reports whether a priority without endpoints keeps its number.
	Fixed() bool
	// Close releases the source. It is called after the channel has been closed.
	Close()
}

// newSource returns a source of the given kind.
func (w *World) newSource(kind string, config Config) Source {
	if kind == "mixed" {
		return newMixed(w, config)
	}
	return w.newLeaf(kind, w.truth, 0, config)
}

// newLeaf returns a source of the given kind for a part of the truth, starting with the given
// priority.
func (w *World) newLeaf(kind string, truth Truth, first int, config Config) Source {
	switch kind {
	case "eds":
		return newEDS(w, truth)
	case "file":
		return newFile(w, truth, config.Dir)
	case "srv":
		return newRecords(w.rand, truth)
	case "kubernetes":
		return newKube(w, truth)
	case "dns":
		return newHosts(w, truth, first)
	}
	return newNames(truth, first)
}

// kinds are the sources that the seed draws from.
var kinds = []string{"failover", "dns", "eds", "eds", "file", "srv", "kubernetes", "mixed", "mixed", "mixed"}

// split returns the host and the port of an address.
func split(address string) (string, uint32) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // addresses come from the world and are valid
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return host, uint32(port)
}
