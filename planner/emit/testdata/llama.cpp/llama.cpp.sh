#!/bin/sh
# llama.cpp for the plan of tiny
case $0 in */*) HERE=${0%/*};; *) HERE=.;; esac
exec llama-server -m "$HERE/"tiny.gguf -c 131072 -np 1 -ub 512 -ngl 5 -fa on -ctk f16 -ctv f16 --fit off -ts 2,3 "$@"
