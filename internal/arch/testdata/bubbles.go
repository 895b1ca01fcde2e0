// Package testdata has functions that wait: in a bubble, in one that another function
// opens, by way of a helper, and outside.
package testdata

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestInABubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) { time.Sleep(time.Hour) })
}

// outside: the bubble is over.
func TestBesideABubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) {})
	time.Sleep(time.Second)
}

// outside: by the other channel.
func TestReceivesBesideABubble(*testing.T) {
	<-time.After(time.Second)
}

// A timeout is no wait: something else should come first.
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

// runOnce opens a bubble, and calls its function after that as well.
func runOnce(t *testing.T, do func(n int)) {
	run(t, do)
	do(2)
}

// outside: through what opens a bubble only now and then.
func TestThroughALeak(t *testing.T) {
	runOnce(t, func(int) { time.Sleep(time.Hour) })
}

func pause() { time.Sleep(time.Minute) }

type steps struct{}

func (steps) wait(int) { pause() }

// outside: one of those who call it.
func rest() { time.Sleep(time.Minute) }

func deepRest() { rest() }

func TestRests(t *testing.T) {
	synctest.Test(t, func(*testing.T) { deepRest() })
}

func TestRestsOutside(*testing.T) { deepRest() }
