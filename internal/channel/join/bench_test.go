package join

import (
	"runtime"
	"testing"

	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// BenchmarkIdenticalAnswer repeats an answer of 10,000 endpoints. Its Identity shows that the
// answer has not changed, so the endpoints need not be compared.
func BenchmarkIdenticalAnswer(b *testing.B) {
	s := &fakeSource{}
	c, err := Start(&recording{}, configOf(b.Name(), "", s))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	a := answerOf(10_000)
	a.Identity = "1"
	for b.Loop() {
		if err := s.Update(a); err != nil {
			b.Fatal(err)
		}
		for serial.Background() > 0 {
			runtime.Gosched()
		}
	}
}
