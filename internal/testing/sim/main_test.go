package sim

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Listen()
	os.Exit(m.Run())
}
