package pickfirst_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	_ "github.com/understudy-lb/understudy/policy/pickfirst"
)

// The channel tries its addresses in random order.
func Example() {
	cc, err := grpc.NewClient("dns:///backends.example:443",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"understudy_pick_first": {"shuffleAddressList": true}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	fmt.Println(cc.GetState())
	// Output: IDLE
}
