package file

// The policies that a generated config names.
import (
	_ "github.com/understudy-lb/understudy/pickfirst"
	_ "github.com/understudy-lb/understudy/weightedroundrobin"
)
