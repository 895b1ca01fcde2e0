package eds

// The policies that a generated config names.
import (
	_ "github.com/understudy-lb/understudy/drop"
	_ "github.com/understudy-lb/understudy/pickfirst"
	_ "github.com/understudy-lb/understudy/priority"
	_ "github.com/understudy-lb/understudy/weightedroundrobin"
	_ "github.com/understudy-lb/understudy/weightedtarget"
)
