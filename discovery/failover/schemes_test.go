package failover_test

// The schemes of entries. They are imported in a test because package file uses failover, too.
import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)
