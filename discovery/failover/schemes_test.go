package failover_test

// These packages register schemes that the tests use. Package failover's internal tests cannot
// import them, because package file imports package failover.
import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)
