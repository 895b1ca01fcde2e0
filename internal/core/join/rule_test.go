package join

import (
	"testing"
	"time"
)

// A mechanism that is in the previous and in the new list must keep its answer, but must use the
// outlier detection of the new list.
func TestNewListChangesOutlierDetection(t *testing.T) {
	now := time.Unix(0, 0)
	c, _ := New(now, Config{Patience: Patience, Kept: func(ID) (Kept, bool) { return Kept{}, false }}, []Mechanism{{Name: "whole"}})
	c.Started(now, 1, Hears{})
	for _, config := range []string{"first", "second"} {
		for _, a := range c.Replaced(now, 1, []Mechanism{{Name: "a", Source: "s", OutlierDetection: config}}) {
			if a.Kind == Start {
				c.Started(now, a.ID, Hears{})
				c.Answered(now, a.ID, Answer{Content: "endpoints"})
			}
		}
		got := c.Next()
		list := c.shown()
		if got.Kind != Send || len(list) != 1 || list[0].OutlierDetection != config || list[0].Answer.Content != "endpoints" {
			t.Errorf("the message is %+v of %+v, want the answer with the %s configuration", got, list, config)
		}
		c.Delivered(true, list[0].ID)
	}
}
