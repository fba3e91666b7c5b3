for n in 2000 6000 8000 8100; do echo "0 $$ $n
1 $$ 9000" > $HELD.new; mv $HELD.new $HELD; sleep 1.3; done
: > $HELD; echo done; exit 3
