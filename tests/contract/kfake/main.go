// Command kfake-server serves a cluster of franz-go's kfake, which is not Apache Kafka's code: its
// topics take any config. It prints its address, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	// Of several brokers, it would choose those of a new topic itself, whatever is asked for.
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	io.Copy(io.Discard, os.Stdin)
}
