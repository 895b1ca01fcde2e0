package xnet

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		attempt      int
		random       float64
		milliseconds int64
	}{
		{0, 0, 800}, {0, 0.5, 1000}, {0, 1, 1200},
		{1, 0.5, 1600}, {2, 0.5, 2560},
		{1000, 0, 96_000}, {1000, 0.5, 120_000}, {1_000_000, 1, 144_000},
	} {
		if d := Backoff(c.attempt, c.random).Round(time.Millisecond); d.Milliseconds() != c.milliseconds {
			t.Errorf("the delay of attempt %d with %v is %v, want %d ms", c.attempt, c.random, d, c.milliseconds)
		}
	}
}
