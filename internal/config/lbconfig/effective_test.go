package lbconfig

import (
	"reflect"
	"testing"
	"time"
)

func TestEffective(t *testing.T) {
	p := NewPriority()
	p.MinReady, p.MinReadyRecovery, p.WarmStandby = 0.6, 0.8, 1
	p.FailbackDelay, p.FailbackJitter, p.MaxFailbackDelay = Duration(1), Duration(2), Duration(3)
	if got := p.Effective(); !reflect.DeepEqual(got, *p) {
		t.Errorf("without overflow: %+v, want no change of %+v", got, *p)
	}
	p.Overflow, p.Ramp = true, Duration(time.Minute)
	want := *NewPriority()
	want.WarmStandby, want.FastFailover, want.Overflow, want.Ramp = 1, true, true, Duration(time.Minute)
	if got := p.Effective(); !reflect.DeepEqual(got, want) {
		t.Errorf("with overflow: %+v, want %+v", got, want)
	}
}
