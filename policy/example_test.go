package policy_test

import (
	"fmt"

	"github.com/understudy-lb/understudy/policy"
)

func ExampleRegisterSpecNames() {
	// Call this at the beginning of main, before the first channel.
	if err := policy.RegisterSpecNames(); err != nil {
		fmt.Println(err)
	}
	// Output:
}
