package failover_test

// These packages register the schemes of entries. They are imported in a test because package file
// itself uses package failover.
import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)
