package org.springframework.cloud.stream.binder.kafka;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.boot.autoconfigure.kafka.KafkaProperties;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.cloud.stream.binder.ExtendedConsumerProperties;
import org.springframework.cloud.stream.binder.ExtendedProducerProperties;
import org.springframework.cloud.stream.binder.kafka.properties.KafkaBinderConfigurationProperties;
import org.springframework.cloud.stream.binder.kafka.properties.KafkaConsumerProperties;
import org.springframework.cloud.stream.binder.kafka.properties.KafkaProducerProperties;
import org.springframework.cloud.stream.binder.kafka.provisioning.KafkaTopicProvisioner;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.integration.IntegrationMessageHeaderAccessor;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.ListenerExecutionFailedException;
import org.springframework.kafka.retrytopic.DeadLetterPublishingRecovererFactory;
import org.springframework.kafka.retrytopic.DestinationTopic;
import org.springframework.kafka.retrytopic.DestinationTopicResolver;
import org.springframework.kafka.retrytopic.DltStrategy;
import org.springframework.messaging.MessageHandler;
import org.springframework.messaging.support.ErrorMessage;

/** Lets Spring's own classes make dead letters, and prints their headers. In this package, because the binder's method is protected. */
public final class SpringLetters {
    private static final class Factory extends DefaultKafkaProducerFactory<byte[], byte[]> {
        final MockProducer<byte[], byte[]> producer = new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());

        Factory() {
            super(Map.of());
        }

        @Override
        public Producer<byte[], byte[]> createProducer() {
            return producer;
        }
    }

    private static final class Binder extends KafkaMessageChannelBinder {
        private final Factory factory;

        Binder(Factory factory, KafkaBinderConfigurationProperties binder, KafkaProperties properties) {
            super(binder, new KafkaTopicProvisioner(binder, properties, List.of()));
            this.factory = factory;
        }

        @Override
        protected DefaultKafkaProducerFactory<byte[], byte[]> getProducerFactory(
                String transaction, ExtendedProducerProperties<KafkaProducerProperties> properties, String bean, String destination) {
            return factory;
        }

        MessageHandler handler() {
            KafkaConsumerProperties own = new KafkaConsumerProperties();
            own.setEnableDlq(true);
            ExtendedConsumerProperties<KafkaConsumerProperties> all = new ExtendedConsumerProperties<>(own);
            return getErrorMessageHandler(() -> "orders", "billing", all);
        }
    }

    public static void main(String[] arguments) {
        Headers before = new RecordHeaders().add("trace-id", "t1".getBytes());
        Exception failed =
                new ListenerExecutionFailedException("Listener failed", "billing", new IllegalStateException("customer 17 is unknown"));
        print("spring", recovered("orders", 3, 77, before, failed));
        List<Header> retried = retried("orders", 3, 77, before, failed, "orders-retry-0");
        print("spring-retried", retried("orders-retry-0", 1, 5, new RecordHeaders(retried), failed, "orders-dlt"));
        print("spring-cloud-stream", bound(before, failed));
    }

    private static ConsumerRecord<byte[], byte[]> record(String topic, int partition, long offset, Headers headers) {
        return new ConsumerRecord<>(
                topic, partition, offset, 1_700_000_000_000L, TimestampType.CREATE_TIME, 1, 1, "k".getBytes(), "v".getBytes(), headers,
                Optional.empty());
    }

    private static List<Header> recovered(String topic, int partition, long offset, Headers headers, Exception failed) {
        Factory factory = new Factory();
        DeadLetterPublishingRecoverer recoverer = new DeadLetterPublishingRecoverer(new KafkaTemplate<>(factory));
        recoverer.setVerifyPartition(false);
        recoverer.accept(record(topic, partition, offset, headers), null, failed);
        return sent(factory);
    }

    private static List<Header> retried(
            String topic, int partition, long offset, Headers headers, Exception failed, String to) {
        Factory factory = new Factory();
        DestinationTopic next =
                new DestinationTopic(
                        to,
                        new DestinationTopic.Properties(
                                1000, "", null, 3, 1, DltStrategy.FAIL_ON_ERROR, new KafkaTemplate<>(factory), (attempt, thrown) -> true, -1));
        DestinationTopicResolver resolver =
                (DestinationTopicResolver)
                        Proxy.newProxyInstance(
                                SpringLetters.class.getClassLoader(), new Class<?>[] {DestinationTopicResolver.class}, (proxy, method, given) -> next);
        DeadLetterPublishingRecovererFactory recoverers = new DeadLetterPublishingRecovererFactory(resolver);
        recoverers.neverLogListenerException();
        recoverers.setDeadLetterPublishingRecovererCustomizer(recoverer -> recoverer.setVerifyPartition(false));
        recoverers.create("listener").accept(record(topic, partition, offset, headers), null, failed);
        return sent(factory);
    }

    private static List<Header> bound(Headers headers, Exception failed) {
        Factory factory = new Factory();
        KafkaProperties properties = new KafkaProperties();
        KafkaBinderConfigurationProperties settings =
                new KafkaBinderConfigurationProperties(properties, new DefaultListableBeanFactory().getBeanProvider(
                        org.springframework.boot.autoconfigure.kafka.KafkaConnectionDetails.class));
        Binder binder = new Binder(factory, settings, properties);
        GenericApplicationContext context = new GenericApplicationContext();
        context.refresh();
        binder.setApplicationContext(context);
        Map<String, Object> source = Map.of(IntegrationMessageHeaderAccessor.SOURCE_DATA, record("orders", 3, 77, headers));
        binder.handler().handleMessage(new ErrorMessage(failed, source));
        return sent(factory);
    }

    private static List<Header> sent(Factory factory) {
        ProducerRecord<byte[], byte[]> record = factory.producer.history().get(0);
        List<Header> headers = new ArrayList<>();
        record.headers().forEach(headers::add);
        return headers;
    }

    private static void print(String family, List<Header> headers) {
        for (Header header : headers) {
            System.out.println(family + "\t" + header.key() + "\t" + Base64.getEncoder().encodeToString(header.value()));
        }
    }
}
