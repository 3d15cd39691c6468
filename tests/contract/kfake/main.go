// Command kfake-server serves a cluster of franz-go's kfake, which is not Apache Kafka's code: its
// topics take any config. Its argument is the number of brokers, by default one; of several, it
// chooses those of new partitions itself, whatever is asked for. It prints its address, and ends when
// its standard input does.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	brokers, ports := 1, []int{0}
	if len(os.Args) > 1 {
		number, err := strconv.Atoi(os.Args[1])
		if err != nil {
			log.Fatal(err)
		}
		brokers, ports = number, make([]int, number)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.Ports(ports...))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	io.Copy(io.Discard, os.Stdin)
}
