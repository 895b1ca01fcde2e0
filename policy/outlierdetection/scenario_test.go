package outlierdetection

import (
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"

	"github.com/understudy-lb/understudy/internal/testing/outlierscenario"
)

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "../../internal/core/outlierdetection/testdata", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			outlierscenario.Run(t, path, func(d *outlierscenario.Draw) outlierscenario.Target { return newHarness(t, d.Next) })
		})
	})
}
