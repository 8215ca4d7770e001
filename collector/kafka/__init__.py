"""aiokafka for the Kafka log and the Kafka sink: clients, producers, and a limit on what aiokafka logs."""
