package failover_test

// The tests use the schemes of these packages. The internal tests of package failover cannot import
// them, because package file imports package failover.
import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)
