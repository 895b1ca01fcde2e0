package ads

import (
	"fmt"
	"strings"
)

// A NACK lists each bad resource with its reason. These limits bound it, for a response
// may hold any number of bad resources, each with a reason of any length.
const (
	maxReasons = 20
	maxReason  = 500 // bytes
)

// reasons collects why resources are rejected.
type reasons struct {
	count int
	texts []string
}

func (r *reasons) add(what string, err error) {
	r.count++
	if r.count > maxReasons {
		return
	}
	text := what + ": " + err.Error()
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	r.texts = append(r.texts, text)
}

// String returns the reasons on one line, or nothing where there are none.
func (r *reasons) String() string {
	if r.count > len(r.texts) {
		return fmt.Sprintf("%s; and %d more", strings.Join(r.texts, "; "), r.count-len(r.texts))
	}
	return strings.Join(r.texts, "; ")
}
