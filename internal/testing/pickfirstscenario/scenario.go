// Package pickfirstscenario runs text scenarios of pick_first, both against the core alone and
// against the real policy over fake subchannels.
//
// These are the directives of a scenario. The output lists the policy's actions, in order.
//
//	new                        replaces the policy by a new one without addresses
//	update a b [health]        passes a list of addresses to the policy, which may be empty; with
//	                           health, the policy also watches the server's health
//	resolver-error text
//	exit-idle
//	reset-backoff
//	report a STATE [error]     the subchannel to address a reports a state
//	health a STATE [error]     the health listener of address a receives a state
//	call c                     call c begins with the current picker
//	answer c                   call c ends, and its response has been received
//	lose c                     call c ends without a response
//	advance 250ms              time passes
//	close
//	shuffle                    prints the shuffled order of endpoints; the input has a line
//	                           "weight u" for each, where u is its random number
//	interleave                 prints the order in which the addresses of the input are tried
package pickfirstscenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
)

// Target is a pick_first policy that logs a line for each of its actions: "connect a", "shutdown
// a", "renew a", "watch a" for the health of a, "resolve", and "publish" followed by "READY a",
// "TRANSIENT_FAILURE: error", "IDLE" or "CONNECTING". For a call, it logs "sent to a", plus "and
// counted" if the picker counts calls.
type Target interface {
	Update(addresses []string, health bool)
	ResolverError(err error)
	ExitIdle()
	ResetBackoff()
	Report(address string, state core.State, err error)
	Health(address string, state core.State, err error)
	Call(name string)
	EndCall(name string, answered bool)
	Advance(d time.Duration)
	Close()
	Take() []string
}

func Run(t *testing.T, path string, newTarget func() Target) {
	target := newTarget()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		words := argumentsOf(d)
		switch d.Cmd {
		case "new":
			target.Close()
			target = newTarget()
			return ""
		case "shuffle":
			return shuffle(t, d.Input)
		case "interleave":
			return interleave(strings.Fields(d.Input))
		}
		if err := drive(target, d.Cmd, words); err != nil {
			d.Fatalf(t, "%v", err)
		}
		return text(target.Take())
	})
	target.Close()
}

func argumentsOf(d *datadriven.TestData) []string {
	var words []string
	for _, a := range d.CmdArgs {
		words = append(words, a.Key)
	}
	return words
}

func text(lines []string) string {
	if len(lines) == 0 {
		return "nothing\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

func drive(target Target, cmd string, words []string) error {
	switch cmd {
	case "update":
		last := len(words) - 1
		if health := last >= 0 && words[last] == "health"; health {
			target.Update(words[:last], true)
		} else {
			target.Update(words, false)
		}
	case "resolver-error":
		target.ResolverError(errors.New(strings.Join(words, " ")))
	case "exit-idle":
		target.ExitIdle()
	case "reset-backoff":
		target.ResetBackoff()
	case "report", "health":
		return report(target, cmd, words)
	case "call":
		target.Call(words[0])
	case "answer", "lose":
		target.EndCall(words[0], cmd == "answer")
	case "advance":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			return err
		}
		target.Advance(d)
	case "close":
		target.Close()
	default:
		return fmt.Errorf("unknown directive %q", cmd)
	}
	return nil
}

func report(target Target, cmd string, words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("want an address and a state after %s", cmd)
	}
	for s := core.Idle; s <= core.TransientFailure; s++ {
		if s.String() != words[1] {
			continue
		}
		var err error
		if len(words) > 2 {
			err = errors.New(strings.Join(words[2:], " "))
		}
		if cmd == "health" {
			target.Health(words[0], s, err)
		} else {
			target.Report(words[0], s, err)
		}
		return nil
	}
	return fmt.Errorf("unknown state %q", words[1])
}

func shuffle(t *testing.T, input string) string {
	var weights []uint32
	var random []float64
	for line := range strings.Lines(input) {
		var weight uint32
		var u float64
		if _, err := fmt.Sscan(line, &weight, &u); err != nil {
			t.Fatalf("%q: want a weight and a random number: %v", line, err)
		}
		weights, random = append(weights, weight), append(random, u)
	}
	return strings.Trim(fmt.Sprintln(core.Shuffle(weights, random)), "[]\n") + "\n"
}

func interleave(addresses []string) string {
	var families []core.Family
	for _, a := range addresses {
		families = append(families, core.FamilyOf(a))
	}
	var order []string
	for _, i := range core.Interleave(families) {
		order = append(order, addresses[i])
	}
	return strings.Join(order, "\n") + "\n"
}
