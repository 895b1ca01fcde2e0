// Package testdata contains functions that wait: in a bubble, in a bubble that another function
// opens, through a helper, and outside a bubble.
package testdata

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) { time.Sleep(time.Hour) })
}

// outside: the bubble has ended.
func TestBesideABubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) {})
	time.Sleep(time.Second)
}

// outside: waits with time.After.
func TestReceivesBesideABubble(*testing.T) {
	<-time.After(time.Second)
}

// A timeout in a select is not a wait.
func TestTimesOut(*testing.T) {
	select {
	case <-make(chan int):
	case <-time.After(time.Second):
	}
}

func run(t *testing.T, do func(n int)) {
	synctest.Test(t, func(*testing.T) { do(1) })
}

func runTwice(t *testing.T, name string, do func(n int)) {
	run(t, func(n int) { do(n); do(n) })
}

func TestThroughAnOpener(t *testing.T) {
	runTwice(t, "", func(int) { time.Sleep(time.Hour) })
	run(t, func(int) { pause() })
	run(t, steps{}.wait)
}

// runOnce calls do in a bubble and again after it.
func runOnce(t *testing.T, do func(n int)) {
	run(t, do)
	do(2)
}

// outside: runOnce also calls its function outside a bubble.
func TestThroughALeak(t *testing.T) {
	runOnce(t, func(int) { time.Sleep(time.Hour) })
}

func pause() { time.Sleep(time.Minute) }

type steps struct{}

func (steps) wait(int) { pause() }

// outside: one of its callers.
func rest() { time.Sleep(time.Minute) }

func deepRest() { rest() }

func TestRests(t *testing.T) {
	synctest.Test(t, func(*testing.T) { deepRest() })
}

func TestRestsOutside(*testing.T) { deepRest() }
