package file_test

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
)

// The endpoints come from a file. The program sets the service config.
func Example() {
	conn, err := understudy.NewClient("file:///etc/checkout/endpoints.yaml?authority=checkout.example.com",
		understudy.Options{ServiceConfig: `{"methodConfig": [{"name": [{}], "waitForReady": true}]}`},
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(conn.Target())
	// Output: file:///etc/checkout/endpoints.yaml?authority=checkout.example.com
}
